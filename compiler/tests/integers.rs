//! Integer corner cases that processors trap on.

use crate::support;

/// An ARK model of one binary op on two vectors of INT32.
fn divide(length: usize) -> String {
    let tensor = |id: usize, buffer: usize| {
        format!(
            r#"{{"Id":{id},"DataType":"INT32","Shape":[{length}],"Strides":[{length}],"Offsets":[0],"PaddedShape":[{length}],"Buffer":{{"Id":{buffer},"Rank":-1,"SendTags":[],"RecvTags":[]}}}}"#
        )
    };
    format!(
        r#"{{"Rank":0,"WorldSize":1,"Nodes":[{{"Id":0,"ProducerNodeIds":[],"ConsumerNodeIds":[],"Op":{{"Type":"Div","Name":"div","IsVirtual":false,"ReadTensors":[{},{}],"WriteTensors":[{}],"ResultTensors":[{}],"Args":{{}}}}}}]}}"#,
        tensor(0, 0),
        tensor(1, 1),
        tensor(2, 2),
        tensor(3, 2)
    )
}

#[test]
fn dividing_by_zero_and_the_smallest_by_minus_one_do_not_trap() {
    // Random integers are small: zeros and minus ones are among 1000 of them.
    support::agreement(&divide(1000), u64::MAX).unwrap();
}
